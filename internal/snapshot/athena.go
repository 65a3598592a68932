package snapshot

import (
	"fmt"
	"path"
	"strings"

	"almanac/internal/parquet"
)

// Athena is the SQL that makes a version's rows readable in Athena: a table of the manifest's columns, a partition that is
// this version, and a query by the manifest's list of files, since files of other attempts may lie beside them. bucket is
// the one that holds the months. It serves versions in Parquet, whose columns Athena finds by their names
// (https://docs.aws.amazon.com/athena/latest/ug/handling-schema-updates-chapter.html); its CSV reader knows text alone.
func (m Manifest) Athena(bucket string) (string, error) {
	if FileFormat(m.Files.Format) != Parquet {
		return "", fmt.Errorf("%s is %s; Athena's table is made for parquet: give the definition that format, and ask for a new version", m.Run, m.Files.Format)
	}
	table := athenaName(m.Type)
	var columns, files []string
	for _, c := range m.Columns {
		typ, err := athenaType(c.Parquet)
		if err != nil {
			return "", fmt.Errorf("the column %q: %w", c.Name, err)
		}
		columns = append(columns, fmt.Sprintf("  `%s` %s", strings.ReplaceAll(strings.ToLower(c.Name), "`", "``"), typ))
	}
	root := "s3://" + bucket + "/"
	for _, c := range m.Chunks {
		files = append(files, "'"+root+c.Object+"'")
	}
	folder := ""
	if len(m.Chunks) > 0 {
		folder = path.Dir(m.Chunks[0].Object)
	}
	values := fmt.Sprintf("workspace = '%s', month = '%s', version = %d", m.Workspace, m.Month, m.Version)
	return fmt.Sprintf(`create external table if not exists %s (
%s)
partitioned by (workspace string, month string, version int)
stored as parquet
location '%sathena-has-partitions-only/';

alter table %s add if not exists partition (%s)
location '%s%s/';

select * from %s
where %s
  and "$path" in (%s);
`, table, strings.Join(columns, ",\n"), root, table, values, root, folder, table, strings.ReplaceAll(values, ", ", " and "), strings.Join(files, ", ")), nil
}

// athenaName is a table's name: letters, digits and _ (https://docs.aws.amazon.com/athena/latest/ug/tables-databases-columns-names.html).
func athenaName(typ string) string { return strings.ReplaceAll(typ, "-", "_") }

// athenaType is a Parquet type in Athena's data definition language
// (https://docs.aws.amazon.com/athena/latest/ug/data-types.html).
func athenaType(spelled string) (string, error) {
	c, err := parquet.ParseType(spelled)
	if err != nil {
		return "", err
	}
	switch c.Type {
	case parquet.Int64:
		return "bigint", nil
	case parquet.Double:
		return "double", nil
	case parquet.Decimal:
		return fmt.Sprintf("decimal(%d,%d)", c.Precision, c.Scale), nil
	case parquet.Bytes:
		return "binary", nil
	case parquet.Bool:
		return "boolean", nil
	case parquet.Date:
		return "date", nil
	case parquet.Timestamp, parquet.Civil:
		return "timestamp", nil
	}
	return "string", nil
}
