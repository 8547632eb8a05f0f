exec mono meter.exe
