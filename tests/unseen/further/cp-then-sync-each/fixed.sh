cp music/*.ogg stick/
sync stick/*.ogg stick
ls stick | wc -l
