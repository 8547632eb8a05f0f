package main

import (
	"fmt"
	"os"

	"github.com/dgraph-io/badger"
)

func main() {
	db, err := badger.Open(badger.DefaultOptions("store").WithSyncWrites(true).WithLogger(nil))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer db.Close()
	put := func(txn *badger.Txn, n int) {
		key := []byte(fmt.Sprintf("event:%08d", n))
		if err := txn.Set(key, []byte(fmt.Sprintf("sensor %d value %d", n%40, n*31%1000))); err != nil {
			panic(err)
		}
	}
	per := 1
	if len(os.Args) > 1 {
		per = 200
	}
	for n := 0; n < 2400; n += per {
		if err := db.Update(func(txn *badger.Txn) error {
			for i := n; i < n+per; i++ {
				put(txn, i)
			}
			return nil
		}); err != nil {
			panic(err)
		}
	}
}
