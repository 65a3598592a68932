package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Open reads what the API gives, or what it has signed an address of, as it comes. The token goes to the API alone. The
// caller closes the body.
func (c *Client) Open(ctx context.Context, path string) (*http.Response, error) {
	token, err := c.Token(ctx)
	if err != nil {
		return nil, err
	}
	direct := *c.HTTP
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := c.get(ctx, &direct, c.Base+path, token)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 3 {
		address, err := resp.Location()
		etag := resp.Header.Get("ETag")
		resp.Body.Close()
		if err != nil {
			return nil, &Unreachable{c.Base, fmt.Errorf("it redirects to nowhere: %w", err)}
		}
		if resp, err = c.get(ctx, c.HTTP, address.String(), ""); err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusOK {
			resp.Body.Close()
			return nil, &Unreachable{address.Scheme + "://" + address.Host, fmt.Errorf("status %s", resp.Status)}
		}
		if etag != "" {
			resp.Header.Set("ETag", etag) // the API's: the bucket has another notion of it
		}
		return resp, nil
	}
	if resp.StatusCode >= 400 {
		defer resp.Body.Close()
		answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err != nil {
			return nil, &Unreachable{c.Base, err}
		}
		return nil, refusal(c.Base, resp, answer)
	}
	return resp, nil
}

func (c *Client) get(ctx context.Context, h *http.Client, address, token string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, "GET", address, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := h.Do(r)
	if err != nil {
		return nil, &Unreachable{r.URL.Scheme + "://" + r.URL.Host, err}
	}
	return resp, nil
}
