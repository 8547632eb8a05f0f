exec ./service
