// Ledger of a bank's branch: nothing is confirmed that is not durable, and after the first failed sync nothing at all.
package main

import (
	"fmt"
	"log"
	"os"
	"strings"
	"time"
)

const batch = 8

func commit(f *os.File, first int) error {
	var b strings.Builder
	for n := first; n < first+batch; n++ {
		fmt.Fprintf(&b, "entry %d %s\n", n, strings.Repeat("booking ", 1000))
	}
	if _, err := f.WriteString(b.String()); err != nil {
		return err
	}
	return f.Sync()
}

func main() {
	f, err := os.OpenFile(os.Args[1], os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0644)
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.Open("volume")
	if err == nil {
		err = dir.Sync()
	}
	if err != nil {
		log.Fatal(err)
	}
	confirmed := 0
	for n := 1; n <= 1600; n += batch {
		if err := commit(f, n); err != nil {
			fmt.Printf("read-only after %d entries: %v\n", confirmed, err)
			f.Close()
			return
		}
		confirmed += batch
		time.Sleep(10 * time.Millisecond)
	}
	f.Close()
	fmt.Println(confirmed, "entries confirmed")
}
