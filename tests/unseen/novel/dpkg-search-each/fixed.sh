dpkg-query --admindir=admin -S $(cat files) > owners
wc -l owners
