PYTHONPATH=modules python3 shop.py eager "$PWD"
su postgres -c "$(ls -d /usr/lib/postgresql/*/bin | head -n 1)/pg_ctl -D $PWD/data -m fast -w stop"
