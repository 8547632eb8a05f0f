// Takes orders from a pipe, stores each as a file of its own, and answers that it has it.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"

	"github.com/google/renameio"
)

func main() {
	in := bufio.NewScanner(os.Stdin)
	answers, err := os.Create("answers")
	if err != nil {
		log.Fatal(err)
	}
	n := 0
	for in.Scan() {
		n++
		name := fmt.Sprintf("orders/%06d.json", n)
		if err := renameio.WriteFile(name, []byte(in.Text()+"\n"), 0644); err != nil {
			log.Fatal(err)
		}
		if len(os.Args) > 1 {
			dir, err := os.Open("orders")
			if err == nil {
				err = dir.Sync()
			}
			if err != nil {
				log.Fatal(err)
			}
			dir.Close()
		}
		fmt.Fprintf(answers, "order %d accepted\n", n)
	}
	fmt.Println(n, "orders")
}
