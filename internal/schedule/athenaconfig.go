package schedule

import (
	"fmt"
	"regexp"

	"almanac/internal/input"
)

// AthenaSource is a database of a catalog that Athena queries. Results go below a prefix of the stage's own bucket, where
// they expire: nobody chooses another place.
type AthenaSource struct {
	Workgroup string `json:"workgroup"`            // the stage's own is almanac-<stage>
	Catalog   string `json:"catalog,omitempty"`    // empty: AwsDataCatalog
	Database  string `json:"database"`             // in the catalog
	ScanLimit int64  `json:"scan_limit,omitempty"` // bytes that one query may scan; 0: what the workgroup allows
}

// GlueCatalog is the account's own catalog.
const GlueCatalog = "AwsDataCatalog"

// Bounds of scan_limit: Athena's least for a workgroup, and far beyond what anybody pays for.
// https://docs.aws.amazon.com/athena/latest/APIReference/API_WorkGroupConfiguration.html (BytesScannedCutoffPerQuery)
const minScan, maxScan = 10_000_000, 1 << 50

var (
	// https://docs.aws.amazon.com/athena/latest/APIReference/API_CreateWorkGroup.html
	workgroupForm = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,128}$`)
	// https://docs.aws.amazon.com/athena/latest/ug/tables-databases-columns-names.html, and s3tablescatalog/<bucket>
	catalogForm  = regexp.MustCompile(`^[a-zA-Z0-9@_/-]{1,256}$`)
	databaseForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,255}$`)
)

func (a AthenaSource) catalog() string {
	if a.Catalog == "" {
		return GlueCatalog
	}
	return a.Catalog
}

// InCatalog is the source with its catalog named.
func (a AthenaSource) InCatalog() AthenaSource {
	a.Catalog = a.catalog()
	return a
}

func (s SourceConfig) checkAthena(c *checker) {
	if s.Object != "" {
		c.Bad("object", input.Quote(s.Object), `nothing beside engine "athena"`)
	}
	if s.Postgres != nil {
		c.Bad("postgres", "given", `nothing beside engine "athena"`)
	}
	if s.Athena == nil {
		c.Bad("athena", "", "workgroup and database")
		return
	}
	a := *s.Athena
	c.Form("athena.workgroup", a.Workgroup, workgroupForm, "a workgroup's name, such as almanac-production")
	c.Form("athena.catalog", a.catalog(), catalogForm, "a catalog's name, or nothing for "+GlueCatalog)
	c.Form("athena.database", a.Database, databaseForm, "a database's name, such as lake")
	if n := a.ScanLimit; n != 0 && (n < minScan || n > maxScan) {
		c.Bad("athena.scan_limit", fmt.Sprint(n), fmt.Sprintf("%d to %d bytes, or nothing for what the workgroup allows", minScan, int64(maxScan)))
	}
}
