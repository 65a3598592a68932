package email

import (
	"encoding/base64"
	"io"
)

func base64Reader(r io.Reader) io.Reader { return base64.NewDecoder(base64.StdEncoding, r) }
