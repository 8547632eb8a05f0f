// Shows the first threads of a mailbox: the index has the mails by thread, the mailbox has them as they came.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"os"
)

type entry struct {
	At     uint64
	Length uint32
}

func main() {
	mbox, err := os.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer mbox.Close()
	index, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	list := make([]entry, len(index)/12)
	if err := binary.Read(bytes.NewReader(index), binary.LittleEndian, list); err != nil {
		log.Fatal(err)
	}
	subjects, size := 0, 0
	for _, e := range list[:9000] {
		mail := make([]byte, e.Length)
		if _, err := mbox.ReadAt(mail, int64(e.At)); err != nil && err != io.EOF {
			log.Fatal(err)
		}
		if line, _, ok := bytes.Cut(mail, []byte("\n\n")); ok && bytes.Contains(line, []byte("Subject: ")) {
			subjects++
		}
		size += len(mail)
	}
	fmt.Println(subjects, "subjects,", size, "bytes")
}
