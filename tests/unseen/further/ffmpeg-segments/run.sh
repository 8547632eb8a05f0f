# cut a recording into pieces of two seconds, without encoding it again, thirty times the stream
for camera in 1 2 3; do
  ffmpeg -v error -stream_loop 12 -i camera.mp4 -c copy -f segment -segment_time 2 -reset_timestamps 1 cam$camera-%04d.ts || exit 1
done
ls | grep -c '\.ts$'
