// sums the trades of a day
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

type trade struct {
	Time  uint64
	Price float64
	Size  uint32
	Venue uint16
	Flags uint16
}

func main() {
	file, err := os.Open("trades.bin")
	if err != nil {
		panic(err)
	}
	defer file.Close()
	var in io.Reader = file
	if len(os.Args) > 1 {
		in = bufio.NewReader(file)
	}
	var t trade
	var volume float64
	count := 0
	for binary.Read(in, binary.LittleEndian, &t) == nil {
		volume += t.Price * float64(t.Size)
		count++
	}
	fmt.Println(count, volume)
}
