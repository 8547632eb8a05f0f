export HOME="$PWD" USER=editor
fossil init notes.fossil > init.log && mkdir work && cd work && fossil open ../notes.fossil > ../open.log || exit 1
for n in $(seq 60); do
  echo "note $n" > note$n.txt
  fossil add note$n.txt > ../add.log && fossil commit --no-prompt -m "note $n" > ../commit.log 2>&1 || { cat ../commit.log; exit 1; }
done
fossil timeline -n 3
