exec ./recorder
