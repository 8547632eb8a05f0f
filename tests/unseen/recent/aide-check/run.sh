aide --config=aide.conf --init > init.out || exit 1
mv aide.db.new aide.db
echo changed >> tree/d7/f7
aide --config=aide.conf --check > report; rc=$?
tail -n 3 report
[ $rc = 4 ]
