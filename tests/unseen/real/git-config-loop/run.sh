i=0; while [ $i -lt 400 ]; do git config --file app.ini "server.host$i" "10.0.0.$i" || exit 1; i=$((i+1)); done
