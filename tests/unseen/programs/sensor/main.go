// Sensor gateway: writes readings to data/current.log, a housekeeping job keeps the disk from filling.
package main

import (
	"bufio"
	"fmt"
	"log"
	"math"
	"os"
	"os/exec"
	"time"
)

func housekeeping() {
	// remove logs once they are "old"
	cmd := exec.Command("sh", "-c", "sleep 0.5; rm -f data/*.log")
	if err := cmd.Run(); err != nil {
		log.Print(err)
	}
}

func main() {
	if err := os.MkdirAll("data", 0o755); err != nil {
		log.Fatal(err)
	}
	f, err := os.OpenFile("data/current.log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 32<<10)
	go housekeeping()
	for i := 0; i < 150; i++ {
		for s := 0; s < 600; s++ {
			fmt.Fprintf(w, "%d sensor%03d %.4f %.4f\n", i, s, math.Sin(float64(i+s)), math.Cos(float64(i*s)))
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := w.Flush(); err != nil {
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
}
