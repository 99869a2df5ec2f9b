// Net/http's Hello World, as its documentation has it.
package main

import (
	"fmt"
	"log"
	"net/http"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "Hello, World!") })
	log.Fatal(http.ListenAndServe(":8080", nil))
}
