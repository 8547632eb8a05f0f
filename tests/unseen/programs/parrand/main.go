// Answers a batch of look-ups in a big table with 32 workers.
package main

import (
	"fmt"
	"log"
	"os"
	"sync"
	"sync/atomic"
)

func main() {
	f, err := os.Open("table.bin")
	if err != nil {
		log.Fatal(err)
	}
	st, err := f.Stat()
	if err != nil {
		log.Fatal(err)
	}
	pages := uint64(st.Size() / 4096)
	var sum atomic.Uint64
	var wg sync.WaitGroup
	for w := 0; w < 32; w++ {
		wg.Add(1)
		go func(x uint64) {
			defer wg.Done()
			buf := make([]byte, 4096)
			for i := 0; i < 1200; i++ {
				x = x*6364136223846793005 + 1442695040888963407
				if _, err := f.ReadAt(buf, int64((x>>24)%pages)*4096); err != nil {
					log.Fatal(err)
				}
				sum.Add(uint64(buf[0]))
			}
		}(uint64(w)*7919 + 1)
	}
	wg.Wait()
	fmt.Println(sum.Load())
}
