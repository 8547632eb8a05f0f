// Looks up the sessions of a list of users in the session store.
package main

import (
	"encoding/binary"
	"fmt"
	"log"
	"math/rand"
	"os"

	bolt "github.com/coreos/bbolt"
)

func key(n uint32) []byte {
	k := make([]byte, 8)
	binary.BigEndian.PutUint64(k, uint64(n)*2654435761)
	return k
}

func fill(db *bolt.DB) error {
	for part := uint32(0); part < 10; part++ {
		err := db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("sessions"))
			if err != nil {
				return err
			}
			for n := part * 10000; n < part*10000+10000; n++ {
				if err := b.Put(key(n), []byte(fmt.Sprintf("%-600s", fmt.Sprint("user ", n)))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func main() {
	db, err := bolt.Open("sessions.db", 0600, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if len(os.Args) > 1 {
		if err := fill(db); err != nil {
			log.Fatal(err)
		}
		return
	}
	found := 0
	r := rand.New(rand.NewSource(4))
	err = db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("sessions"))
		for i := 0; i < 9000; i++ {
			if v := b.Get(key(uint32(r.Intn(100000)))); len(v) == 600 && v[0] == 'u' {
				found++
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found, "sessions")
}
