./accept dir < in
