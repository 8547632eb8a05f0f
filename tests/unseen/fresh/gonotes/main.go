// Exports the notes of all users for the monthly archive and removes what was exported.
package main

import (
	"fmt"
	"log"
	"os"
)

func main() {
	out, err := os.Create("archive.txt")
	if err != nil {
		log.Fatal(err)
	}
	entries, err := os.ReadDir("notes")
	if err != nil {
		log.Fatal(err)
	}
	done := 0
	for _, e := range entries {
		name := "notes/" + e.Name()
		text, err := os.ReadFile(name)
		if err != nil {
			log.Print(err)
			continue
		}
		fmt.Fprintf(out, "== %s\n%s\n", e.Name(), text)
		os.Remove(name)
		done++
	}
	out.Close()
	fmt.Println(done, "notes archived")
}
