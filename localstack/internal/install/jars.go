package install

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"almanac/localstack/internal/dynamodblocal"
	"almanac/localstack/internal/machine"
	"almanac/localstack/internal/step"
)

// copyDependencies is the Maven goal that fetches, at a pinned version.
const copyDependencies = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

// dynamoDBLocal fetches AWS's own DynamoDB Local with what it needs from Maven Central, and keeps it only if each file is
// one of those that were pinned. Its licence does not let anybody hand it on, so it is in no repository.
func (in Installer) dynamoDBLocal(ctx context.Context) (string, error) {
	folder := dynamodblocal.Jars(in.Instance.Root)
	pom, digests := in.path("localstack", "dynamodb-local", "pom.xml"), in.path("localstack", "dynamodb-local", "digests.txt")
	result := filepath.Join(folder, "DynamoDBLocal-"+dynamodblocal.Version+".jar")
	return in.once("dynamodb-local", []string{pom, digests}, []string{result}, func() error {
		for _, tool := range machine.JavaTools {
			if err := tool.Check(ctx, machine.RunTool); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
		err := in.fetched("mvn", in.run(ctx, in.Instance.Root, "mvn", "--quiet", "--batch-mode", "--no-transfer-progress", "--file", pom,
			copyDependencies, "-DincludeScope=runtime", "-DoutputDirectory="+folder))
		if err != nil {
			return err
		}
		if err := checkDigests(folder, digests); err != nil {
			return errors.Join(err, os.RemoveAll(folder))
		}
		return nil
	})
}

// checkDigests compares every file of a folder with a list of SHA-256 sums as sha256sum writes it: none may differ, lack
// or be too much.
func checkDigests(folder, list string) error {
	f, err := os.Open(list)
	if err != nil {
		return err
	}
	defer f.Close()
	var wrong, listed []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		want, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || len(want) != 64 {
			return fmt.Errorf("%s: %q is no line of sha256sum", list, lines.Text())
		}
		listed = append(listed, name)
		switch have, err := digest(filepath.Join(folder, name)); {
		case errors.Is(err, os.ErrNotExist):
			wrong = append(wrong, name+" is missing")
		case err != nil:
			return err
		case have != want:
			wrong = append(wrong, fmt.Sprintf("%s has SHA-256 %s, pinned is %s", name, have, want))
		}
	}
	there, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range there {
		if !slices.Contains(listed, entry.Name()) {
			wrong = append(wrong, entry.Name()+" is not pinned")
		}
	}
	if wrong != nil {
		return step.Fail(nil, "the files fetched are not those that "+list+" pins: "+strings.Join(wrong, "; "),
			"do not work around it: a repository on the way serves other files; compare with Maven Central's own")
	}
	return nil
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}
