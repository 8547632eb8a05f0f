exec ./resolve
