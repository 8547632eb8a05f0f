exec ./scrub
