// Package manifest reads the YAML files that describe owners, workspaces, sources, groups, schedules and snapshots. It remembers where each field
// stands, so that whatever refuses one can be shown with file and line.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Kinds, in the order in which they are applied.
const (
	Workspace = "workspace"
	Source    = "source"
	Group     = "group"
	Schedule  = "schedule"
	Owner     = "owner"    // caps of monthly snapshots
	Snapshot  = "snapshot" // a type of monthly snapshots
)

// kinds as people read them, in the order in which they are applied: an owner before the workspaces that it owns, and all
// that a definition names before it.
var order = []string{Owner, Workspace, Source, Group, Schedule, Snapshot}

const wantKind = "owner, workspace, source, group, schedule or snapshot"

// keys are the fields that name a document, by kind.
var keys = map[string]string{Workspace: "id", Source: "name", Group: "id", Schedule: "id", Owner: "id", Snapshot: "type"}

// Document is one YAML document.
type Document struct {
	Kind string
	Name string
	File string
	JSON json.RawMessage // its fields, without kind
	root *yaml.Node
}

// At is file:line of a field such as recipients[2].email, or of the nearest field around it that is there.
func (d Document) At(field string) string { return fmt.Sprintf("%s:%d", d.File, line(d.root, field)) }

// Errors are all that is wrong in the files, a line each.
type Errors []string

func (e Errors) Error() string { return strings.Join(e, "\n") }

const (
	maxFile  = 6 << 20 // bytes of one file: ten thousand recipients take half a megabyte, as long as they can be four
	maxNodes = 100_000 // nodes of one document, aliases counted each time they are used
)

// Read reads every .yaml and .yml file of a folder and the folders below it, or one file. Names that start with a dot
// are left out. Documents come in the order of their kinds, then files.
func Read(path string) ([]Document, error) {
	files, err := list(path)
	if err != nil {
		return nil, err
	}
	var docs []Document
	var wrong Errors
	for _, f := range files {
		d, err := readFile(f, f == path)
		var e Errors
		if errors.As(err, &e) {
			wrong = append(wrong, e...)
		} else if err != nil {
			return nil, err
		}
		docs = append(docs, d...)
	}
	first := map[string]Document{}
	for _, d := range docs {
		id := d.Kind + " " + d.Name
		if other, twice := first[id]; twice {
			wrong = append(wrong, fmt.Sprintf("%s: %s is described twice; the other one is at %s", d.At(keys[d.Kind]), id, other.At(keys[d.Kind])))
			continue
		}
		first[id] = d
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	if len(docs) == 0 {
		return nil, fmt.Errorf("%s holds no document; write files that end in .yaml, each document with its kind: %s", path, wantKind)
	}
	slices.SortStableFunc(docs, func(a, b Document) int { return slices.Index(order, a.Kind) - slices.Index(order, b.Kind) })
	return docs, nil
}

func list(path string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p != path && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return filepath.SkipDir
			}
		case e.IsDir():
		case p == path, filepath.Ext(p) == ".yaml", filepath.Ext(p) == ".yml":
			files = append(files, p)
		}
		return nil
	})
	slices.Sort(files)
	return files, err
}

// readFile reads one file, of which it never takes more than fits: a link may lead to a device that has no end. Pipes
// are refused before they are opened, since that waits for somebody to write; a file that was named itself may be one.
func readFile(name string, named bool) ([]Document, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !named && !info.Mode().IsRegular() {
		return nil, Errors{fmt.Sprintf("%s: it is no ordinary file; a name that ends in .yaml is a description", name)}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxFile {
		return nil, Errors{fmt.Sprintf("%s: more than %d bytes; a file has at most that many", name, maxFile)}
	}
	return parse(name, b)
}

// parse reads the documents of one file.
func parse(name string, b []byte) ([]Document, error) {
	var docs []Document
	var wrong Errors
	for d := yaml.NewDecoder(bytes.NewReader(b)); ; {
		var n yaml.Node
		if err := d.Decode(&n); err == io.EOF {
			break
		} else if err != nil {
			return docs, append(wrong, syntax(name, err))
		}
		if len(n.Content) == 0 || n.Content[0].Tag == "!!null" {
			continue // an empty document
		}
		doc, err := document(name, n.Content[0])
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s:%s", name, err))
			continue
		}
		docs = append(docs, doc)
	}
	if len(wrong) > 0 {
		return docs, wrong
	}
	return docs, nil
}

var syntaxLine = regexp.MustCompile(`^yaml: (?:line )?(\d+): (.*)`)

// syntax puts the reader's own line into the form file:line: text.
func syntax(name string, err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if m := syntaxLine.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s:%s: %s", name, m[1], m[2])
	}
	return name + ": " + strings.TrimPrefix(text, "yaml: ")
}

func document(name string, root *yaml.Node) (Document, error) {
	if root.Kind != yaml.MappingNode {
		return Document{}, fmt.Errorf("%d: a document is a mapping that begins with kind: %s", root.Line, wantKind)
	}
	count := 0
	v, err := value(root, &count)
	if err != nil {
		return Document{}, err
	}
	fields := v.(map[string]any)
	kind, _ := fields["kind"].(string)
	key, known := keys[kind]
	if !known {
		text, _ := json.Marshal(fields["kind"])
		return Document{}, fmt.Errorf("%d: kind is %s; want %s", line(root, "kind"), text, wantKind)
	}
	delete(fields, "kind")
	id, ok := fields[key].(string)
	if !ok || id == "" {
		text, _ := json.Marshal(fields[key])
		return Document{}, fmt.Errorf("%d: %s of the %s is %s; want its name as text", line(root, key), key, kind, text)
	}
	if kind == Snapshot {
		id = snapshotName(fields, id)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return Document{}, fmt.Errorf("%d: %w", root.Line, err)
	}
	return Document{Kind: kind, Name: id, File: name, JSON: text, root: root}, nil
}

// snapshotName names a definition of snapshots: WORKSPACE/TYPE, or owner/OWNER/TYPE.
func snapshotName(fields map[string]any, typ string) string {
	if owner, ok := fields["owner"].(string); ok && owner != "" {
		return "owner/" + owner + "/" + typ
	}
	workspace, _ := fields["workspace"].(string)
	return workspace + "/" + typ
}

// value turns a node into what JSON can hold. Numbers keep their digits; times stay the text they are.
func value(n *yaml.Node, count *int) (any, error) {
	if *count++; *count > maxNodes {
		return nil, fmt.Errorf("%d: the document is too large once its aliases are written out", n.Line)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return value(n.Alias, count)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := value(c, count)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		return mapping(n, count)
	}
	return scalar(n)
}

func mapping(n *yaml.Node, count *int) (any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode || k.Tag != "!!str" {
			return nil, fmt.Errorf("%d: a field's name is text; %q is not (write it in quotes; merging with << is not supported)", k.Line, k.Value)
		}
		if _, twice := m[k.Value]; twice {
			return nil, fmt.Errorf("%d: field %s is written twice", k.Line, k.Value)
		}
		v, err := value(n.Content[i+1], count)
		if err != nil {
			return nil, err
		}
		m[k.Value] = v
	}
	return m, nil
}

func scalar(n *yaml.Node) (any, error) {
	switch n.Tag {
	case "!!null":
		return nil, nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return nil, fmt.Errorf("%d: %q is neither true nor false", n.Line, n.Value)
		}
		return b, nil
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value), nil
		}
		return number(n)
	case "!!str", "!!timestamp":
		return n.Value, nil
	}
	return nil, fmt.Errorf("%d: values of the kind %s are not possible; write text in quotes", n.Line, n.Tag)
}

// number reads spellings that YAML has and JSON has not, such as 0x1F or 1_000.
func number(n *yaml.Node) (any, error) {
	if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
		return i, nil
	}
	return nil, fmt.Errorf("%d: %s is no number that can be passed on; write it in digits", n.Line, n.Value)
}

// line finds where a field stands.
func line(n *yaml.Node, field string) int {
	at := n.Line
	for _, step := range steps(field) {
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		next := (*yaml.Node)(nil)
		if i, err := strconv.Atoi(step); err == nil && n.Kind == yaml.SequenceNode && i < len(n.Content) {
			next, at = n.Content[i], n.Content[i].Line
		} else if n.Kind == yaml.MappingNode {
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == step {
					next, at = n.Content[i+1], n.Content[i].Line
				}
			}
		}
		if next == nil {
			return at
		}
		n = next
	}
	return at
}

func steps(field string) []string {
	return strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}
