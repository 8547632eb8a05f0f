exec mono meter.exe once
