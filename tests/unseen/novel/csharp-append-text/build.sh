mcs -out:meter.exe Meter.cs
