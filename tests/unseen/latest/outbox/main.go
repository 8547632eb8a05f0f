// Outbox of a shop: an order is confirmed to the customer as soon as it is durable.
package main

import (
	"fmt"
	"log"
	"os"
	"strings"
	"time"
)

type outbox struct {
	f         *os.File
	confirmed int
}

func (o *outbox) add(n int) error {
	order := fmt.Sprintf("order %d %s\n", n, strings.Repeat("item ", 3000))
	if _, err := o.f.WriteString(order); err != nil {
		return err
	}
	if err := o.f.Sync(); err != nil {
		log.Printf("outbox: %v", err)
	}
	o.confirmed++
	return nil
}

func main() {
	f, err := os.OpenFile(os.Args[1], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0644)
	if err != nil {
		log.Fatal(err)
	}
	o := &outbox{f: f}
	for n := 1; n <= 600; n++ {
		if err := o.add(n); err != nil {
			log.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	f.Close()
	fmt.Println(o.confirmed, "orders confirmed")
}
