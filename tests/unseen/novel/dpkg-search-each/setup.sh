mkdir -p admin/info admin/updates
: > admin/status
for n in $(seq 800); do
  { echo "Package: tool$n"; echo "Status: install ok installed"; echo "Architecture: all"; echo "Version: 1.$n"; echo "Maintainer: a <a@example.org>"; echo "Description: tool $n"; echo; } >> admin/status
  { echo /.; echo /usr; echo /usr/share; for f in $(seq 60); do echo /usr/share/tool$n/file$f; done; } > admin/info/tool$n.list
  : > admin/info/tool$n.md5sums
done
echo 1 > admin/info/format
for n in $(seq 1 10 800); do echo /usr/share/tool$n/file7; done > files
