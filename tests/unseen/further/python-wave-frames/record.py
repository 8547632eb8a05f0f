"""Store a recording as it comes in, 10 ms at a time."""
import sys
import wave

raw = len(sys.argv) > 1
with open("capture.raw", "rb") as source, wave.open("capture.wav", "wb") as out:
    out.setnchannels(1)
    out.setsampwidth(2)
    out.setframerate(16000)
    while True:
        frames = source.read(320)
        if not frames:
            break
        if raw:
            out.writeframesraw(frames)
        else:
            out.writeframes(frames)
print("stored")
