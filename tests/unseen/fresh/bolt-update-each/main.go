// Takes jobs from workers and keeps them in a queue on disk until they are done.
package main

import (
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	bolt "github.com/coreos/bbolt"
)

var jobs = []byte("jobs")

func put(b *bolt.Bucket, worker, n int) error {
	id, err := b.NextSequence()
	if err != nil {
		return err
	}
	k := make([]byte, 8)
	binary.BigEndian.PutUint64(k, id)
	return b.Put(k, []byte(fmt.Sprintf(`{"worker":%d,"job":%d,"state":"new"}`, worker, n)))
}

func main() {
	db, err := bolt.Open("queue.db", 0600, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store := db.Update
	if len(os.Args) > 1 {
		store = db.Batch
		db.MaxBatchDelay = time.Millisecond
	}
	if err := db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucketIfNotExists(jobs); return err }); err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := 0; w < 32; w++ {
		wg.Add(1)
		go func(w int) {
			defer wg.Done()
			for n := 0; n < 40; n++ {
				if err := store(func(tx *bolt.Tx) error { return put(tx.Bucket(jobs), w, n) }); err != nil {
					log.Fatal(err)
				}
			}
		}(w)
	}
	wg.Wait()
	db.View(func(tx *bolt.Tx) error { fmt.Println(tx.Bucket(jobs).Stats().KeyN, "jobs"); return nil })
}
