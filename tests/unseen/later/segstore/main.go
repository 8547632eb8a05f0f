// Event store: many producers append to one segment file; whoever waits for a commit shares it with all others that wait.
package main

import (
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"sync"
	"syscall"
)

const segment = 32 << 20

type request struct {
	data []byte
	done chan error
}

type store struct {
	f    *os.File
	at   int64
	in   chan request
	quit chan struct{}
}

func create(name string) (*store, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, segment); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	d, err := os.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return nil, err
	}
	s := &store{f: f, in: make(chan request, 256), quit: make(chan struct{})}
	go s.commits()
	return s, nil
}

func (s *store) commits() {
	defer close(s.quit)
	for first := range s.in {
		batch, buf := []request{first}, frame(nil, first.data)
		for more := true; more && len(batch) < 256; {
			select {
			case r, ok := <-s.in:
				if more = ok; ok {
					batch, buf = append(batch, r), frame(buf, r.data)
				}
			default:
				more = false
			}
		}
		_, err := s.f.WriteAt(buf, s.at)
		if err == nil {
			err = syscall.Fdatasync(int(s.f.Fd()))
		}
		s.at += int64(len(buf))
		for _, r := range batch {
			r.done <- err
		}
	}
}

func frame(buf, data []byte) []byte {
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(data)))
	return append(buf, data...)
}

func (s *store) append(data []byte) error {
	r := request{data, make(chan error, 1)}
	s.in <- r
	return <-r.done
}

func main() {
	s, err := create("events.seg")
	if err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	for p := 0; p < 64; p++ {
		wg.Add(1)
		go func(p int) {
			defer wg.Done()
			for i := 0; i < 300; i++ {
				event := fmt.Sprintf("producer %d event %d %0900d", p, i, i)
				if err := s.append([]byte(event)); err != nil {
					log.Fatal(err)
				}
			}
		}(p)
	}
	wg.Wait()
	close(s.in)
	<-s.quit
	fmt.Println(64*300, "events")
}
