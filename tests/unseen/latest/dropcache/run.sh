exec ./fingerprint disk0 disk1
