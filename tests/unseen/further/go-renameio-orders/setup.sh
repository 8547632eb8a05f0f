mkdir orders; awk 'BEGIN { for (n = 0; n < 400; n++) printf "{\"customer\":%d,\"items\":[%d,%d,%d]}\n", n % 97, n, n * 7, n * 31 }' > in
