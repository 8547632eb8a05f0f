mkdir -p tmp; TMPDIR=$PWD/tmp venv/bin/pip install --no-index --no-deps --no-cache-dir --disable-pip-version-check -q blindpkg-1.0-py3-none-any.whl && venv/bin/python -c 'import blindpkg.m7'
