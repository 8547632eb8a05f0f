bin=$(ls -d /usr/lib/postgresql/*/bin | head -n 1)
pip install -q --target modules sqlalchemy==2.1.9 psycopg2-binary==2.9.13
mkdir data && chown postgres . data
setsid su postgres -c "$bin/initdb -A trust -D $PWD/data && $bin/pg_ctl -D $PWD/data -l $PWD/data/log -o '-c listen_addresses= -k $PWD' -w start"
PYTHONPATH=modules python3 shop.py setup "$PWD"
