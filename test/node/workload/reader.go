package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// A reader reads a pair of certificate and key again and again, as a server does that looks for a new one: it opens the
// directory, and both files by its descriptor.
type reader struct {
	directory string

	// What was read last and found whole: it need not be parsed again, which is most of the work. Of the reading routine alone.
	certificate, key []byte
	serial           int64

	lock  sync.Mutex
	state findings
}

type findings struct {
	// Newest is the serial number of the newest certificate read; 0 before the first.
	Newest int64 `json:"newest"`
	// Distinct counts the certificates that were read whole, each once.
	Distinct int `json:"distinct"`
	Reads    int `json:"reads"`
	// Stale counts the reads that met the end of the directory they had open, and began again.
	Stale int `json:"stale"`
	// Faults are what must not be: a pair that does not match, a file that is not whole, a directory that is gone, an older pair.
	Faults []string `json:"faults"`
}

// How many faults are kept. One is too many already.
const mostFaults = 20

func (r *reader) run() {
	for {
		serial, err := r.read()
		r.note(serial, err)
		time.Sleep(time.Millisecond)
	}
}

var errStale = errors.New("the directory was replaced while it was open")

func (r *reader) read() (int64, error) {
	directory, err := os.OpenRoot(r.directory)
	if err != nil {
		return 0, err
	}
	defer directory.Close()
	certificate, err := readWhole(directory, "tls.crt")
	if err != nil {
		return 0, err
	}
	key, err := readWhole(directory, "tls.key")
	if err != nil {
		return 0, err
	}
	if bytes.Equal(certificate, r.certificate) && bytes.Equal(key, r.key) {
		return r.serial, nil
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return 0, fmt.Errorf("%d and %d bytes: %w", len(certificate), len(key), err)
	}
	r.certificate, r.key, r.serial = certificate, key, pair.Leaf.SerialNumber.Int64()
	return r.serial, nil
}

func readWhole(directory *os.Root, name string) ([]byte, error) {
	file, err := directory.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errStale
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

func (r *reader) note(serial int64, err error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	state := &r.state
	switch {
	case errors.Is(err, errStale):
		state.Stale++
	case errors.Is(err, fs.ErrNotExist) && state.Newest == 0:
		// Nothing was published yet.
	case err != nil:
		state.addFault(err.Error())
	case serial < state.Newest:
		state.addFault(fmt.Sprintf("pair %d after pair %d", serial, state.Newest))
	default:
		state.Reads++
		if serial > state.Newest {
			state.Distinct++
			state.Newest = serial
		}
	}
}

func (f *findings) addFault(fault string) {
	if len(f.Faults) < mostFaults {
		f.Faults = append(f.Faults, fault)
	}
}

func (r *reader) findings() findings {
	r.lock.Lock()
	defer r.lock.Unlock()
	state := r.state
	state.Faults = append([]string{}, state.Faults...)
	return state
}
