// Ships the lines of a log to the collector and remembers how far it came, so that a restart goes on there.
package main

import (
	"bufio"
	"encoding/json"
	"io"
	"log"
	"os"
)

type registry map[string]int64

func load() registry {
	r := registry{}
	if b, err := os.ReadFile("registry.json"); err == nil {
		if err := json.Unmarshal(b, &r); err != nil {
			log.Fatal(err)
		}
	}
	return r
}

func (r registry) save() error {
	b, _ := json.Marshal(r)
	f, err := os.Create("registry.json.new")
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	f.Close()
	if err != nil {
		return err
	}
	return os.Rename("registry.json.new", "registry.json")
}

func ship(name string, from int64, out io.Writer) (int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return from, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return from, err
	}
	in := bufio.NewReaderSize(f, 1<<16)
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			return from, nil
		}
		if err != nil {
			return from, err
		}
		if _, err := io.WriteString(out, line); err != nil {
			return from, err
		}
		from += int64(len(line))
	}
}

func main() {
	out, err := os.OpenFile("collected", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0644)
	if err != nil {
		log.Fatal(err)
	}
	w := bufio.NewWriterSize(out, 1<<16)
	r := load()
	for _, name := range os.Args[1:] {
		at, err := ship(name, r[name], w)
		if err != nil {
			log.Fatal(err)
		}
		r[name] = at
	}
	if err := w.Flush(); err != nil {
		log.Fatal(err)
	}
	if err := r.save(); err != nil {
		log.Fatal(err)
	}
}
