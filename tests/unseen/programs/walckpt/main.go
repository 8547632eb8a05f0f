// Order store: commits go to a log, now and then a checkpoint writes all data while commits go on.
package main

import (
	"fmt"
	"log"
	"os"
	"sort"
	"sync"
	"syscall"
	"time"
)

func checkpoint(wg *sync.WaitGroup) {
	defer wg.Done()
	f, err := os.Create("checkpoint.dat")
	if err != nil {
		log.Fatal(err)
	}
	block := make([]byte, 4<<20)
	for i := 0; i < 90; i++ {
		for j := range block {
			block[j] = byte(i + j*7)
		}
		if _, err := f.Write(block); err != nil {
			log.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		log.Fatal(err)
	}
	f.Close()
}

func main() {
	wal, err := os.OpenFile("orders.wal", os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	if err := syscall.Fallocate(int(wal.Fd()), 0, 0, 16<<20); err != nil {
		log.Fatal(err)
	}
	if err := wal.Sync(); err != nil {
		log.Fatal(err)
	}
	dir, _ := os.Open(".")
	dir.Sync()
	var lat []time.Duration
	var wg sync.WaitGroup
	rec := make([]byte, 16384)
	start := time.Now()
	for i := 0; time.Since(start) < 3500*time.Millisecond; i++ {
		if i == 100 {
			wg.Add(1)
			go checkpoint(&wg)
		}
		t := time.Now()
		if _, err := wal.WriteAt(rec, int64(i%1024)*16384); err != nil {
			log.Fatal(err)
		}
		if err := syscall.Fdatasync(int(wal.Fd())); err != nil {
			log.Fatal(err)
		}
		lat = append(lat, time.Since(t))
	}
	wg.Wait()
	before := append([]time.Duration{}, lat[:100]...)
	sort.Slice(before, func(i, j int) bool { return before[i] < before[j] })
	sort.Slice(lat, func(i, j int) bool { return lat[i] < lat[j] })
	fmt.Println("commits", len(lat), "p50", lat[len(lat)/2], "p99", lat[len(lat)*99/100], "max", lat[len(lat)-1], "p50 and p99 alone", before[50], before[98])
}
