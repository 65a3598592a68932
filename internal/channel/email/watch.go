package email

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/smithy-go/middleware"

	"almanac/internal/channel/wire"
)

// watch puts a wire.Watch around the exchange with SES alone: credentials may be fetched over HTTP within the same
// call, and that exchange says nothing about the mail.
type watch struct {
	wire.Watch
	entered, transmitting bool
}

// nothingLeft is certain as well when the SDK began the call and failed before its transport was asked, for want of
// credentials for example.
func (w *watch) nothingLeft(err error) bool {
	return w.entered && !w.transmitting || w.Watch.NothingLeft(err)
}

// install adds two steps to the SDK's own for this call: the first notes that the SDK has begun, the last, next to the
// transport, watches the connection.
func (w *watch) install(o *ses.Options) {
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		begin := middleware.InitializeMiddlewareFunc("AlmanacBegin", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			w.entered = true
			return next.HandleInitialize(ctx, in)
		})
		transmit := middleware.DeserializeMiddlewareFunc("AlmanacTransmit", func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			w.transmitting = true
			return next.HandleDeserialize(w.Context(ctx), in)
		})
		if err := s.Initialize.Add(begin, middleware.Before); err != nil {
			return err
		}
		return s.Deserialize.Add(transmit, middleware.After)
	})
}
