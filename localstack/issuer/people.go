package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
)

// person may sign in.
type person struct {
	Name     string `json:"name"`
	Group    string `json:"group"`
	Password string `json:"password"`
}

// subject is the stable id of a person: the same after each start.
func (p person) subject() string {
	sum := sha256.Sum256([]byte("almanac local person\n" + p.Name))
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

const maxUsers = 1 << 20 // bytes of the file

var (
	clientForm = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	groupForm  = regexp.MustCompile(`^[a-z]+(@[A-Za-z0-9_-]+)?$`)
)

// people reads the file anew for each sign-in, so that it may be written after the start, and changed.
func people(file string) ([]person, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []person
	if len(b) > maxUsers {
		return nil, fmt.Errorf("%s has %d bytes; want at most %d", file, len(b), maxUsers)
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf(`%s is no list of people ({"name","group","password"}): %w`, file, err)
	}
	seen := map[string]bool{}
	for i, p := range list {
		switch {
		case p.Name == "" || seen[p.Name]:
			return nil, fmt.Errorf("%s: name of person %d is %q; want one that no other has", file, i+1, p.Name)
		case p.Password == "":
			return nil, fmt.Errorf("%s: password of %s is empty; nobody could be kept out", file, p.Name)
		case !groupForm.MatchString(p.Group):
			return nil, fmt.Errorf("%s: group of %s is %q; want a role such as viewer, or viewer@WORKSPACE", file, p.Name, p.Group)
		}
		seen[p.Name] = true
	}
	return list, nil
}

// errWhoever says neither whether the name or the password is wrong.
var errWhoever = errors.New("incorrect username or password")

// find is the person of a name.
func find(file, name string) (person, error) {
	list, err := people(file)
	if err != nil {
		return person{}, err
	}
	for _, p := range list {
		if p.Name == name {
			return p, nil
		}
	}
	return person{}, errWhoever
}

// admit is the person of a name and password.
func admit(file, name, password string) (person, error) {
	p, err := find(file, name)
	if err != nil {
		return p, err
	}
	have, want := sha256.Sum256([]byte(password)), sha256.Sum256([]byte(p.Password))
	if subtle.ConstantTimeCompare(have[:], want[:]) != 1 {
		return person{}, errWhoever
	}
	return p, nil
}
