package main

import (
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"os"
)

// A report is what the pod says of itself.
type report struct {
	// Instance is another one for each start of the program.
	Instance string `json:"instance"`
	// Revision is the environment's SAYS.
	Revision string    `json:"revision"`
	Findings *findings `json:"findings,omitempty"`
}

// serve answers on 127.0.0.1 until SIGTERM: /report with a report, /readyz with 503 if the environment has READY=never, else 200.
// With a directory, it reads the pair there all the while.
func serve(port, directory string) error {
	instance, revision := rand.Text(), os.Getenv("SAYS")
	var pairs *reader
	if directory != "" {
		pairs = &reader{directory: directory}
		go pairs.run()
	}
	http.HandleFunc("/report", func(response http.ResponseWriter, _ *http.Request) {
		answer := report{Instance: instance, Revision: revision}
		if pairs != nil {
			found := pairs.findings()
			answer.Findings = &found
		}
		response.Header().Set("Content-Type", "application/json")
		// A client that has gone away is no fault of this program.
		_ = json.NewEncoder(response).Encode(answer)
	})
	http.HandleFunc("/readyz", func(response http.ResponseWriter, _ *http.Request) {
		if os.Getenv("READY") == "never" {
			response.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- http.Serve(listener, nil) }()
	go func() {
		awaitEnd()
		failed <- nil
	}()
	return <-failed
}
