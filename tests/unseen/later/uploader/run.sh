exec ./uploader
