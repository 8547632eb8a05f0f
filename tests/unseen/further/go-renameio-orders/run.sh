./accept < in
