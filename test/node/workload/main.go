// Command workload is what runs in the pods of the node tests: one static program, so that its image is made without a registry.
//
//	workload pause              waits for its end: the image of every pod's sandbox
//	workload serve PORT [DIR]   serves what it is and, with DIR, what it reads there, on 127.0.0.1:PORT
//	workload pairs N DIR        writes the certificates 1 to N with their keys to DIR, as N.crt and N.key
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "workload: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "pause":
		awaitEnd()
		return nil
	case len(args) >= 2 && len(args) <= 3 && args[0] == "serve":
		directory := ""
		if len(args) == 3 {
			directory = args[2]
		}
		return serve(args[1], directory)
	case len(args) == 3 && args[0] == "pairs":
		count, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return err
		}
		return writePairs(count, args[2])
	}
	return fmt.Errorf("unknown arguments %q", args)
}

// awaitEnd returns at SIGTERM, which the first process of a container would otherwise ignore.
func awaitEnd() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
}
