ffmpeg -v error -f lavfi -i testsrc=size=640x360:rate=25 -t 20 -c:v mpeg4 -b:v 8M -g 25 camera.mp4
