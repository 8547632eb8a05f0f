exec ./ringtail video.ring
