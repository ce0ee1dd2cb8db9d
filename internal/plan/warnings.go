package plan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// flaw is something that is known to go wrong with one version of an image.
type flaw struct {
	// image is the last part of its repository, and version its tag.
	image, version string
	// warning has what goes wrong, and what to do.
	warning string
}

// flaws are from the issues of Velero: github.com/vmware-tanzu/velero/issues/NUMBER.
var flaws = []flaw{
	// 9804
	{awsImage, "v1.14.1", "cannot write to some object stores that are not Amazon's; choose v1.14.3 or newer if that is offered"},
	// 9951, mended in v1.14.3
	{awsImage, "v1.14.2", "corrupts backups on object stores that are not Amazon's; choose v1.14.3 or newer if that is offered"},
}

const (
	awsImage = "velero-plugin-for-aws"
	csiImage = "velero-plugin-for-csi"

	// Plugins of the three clouds are numbered alongside Velero: 1.N is made for 1.N+4, as their READMEs say.
	minorsBehind = 4
	// csiMerged is the minor version of Velero that has the CSI plugin in it. With both, the server ends (issue 8871).
	csiMerged = 14
)

var numberedAlongside = map[string]bool{awsImage: true, "velero-plugin-for-microsoft-azure": true, "velero-plugin-for-gcp": true}

// Warnings are what is known to go wrong with the versions that were chosen. They are told, and nothing is refused: who offers a version may know
// better.
func (p *Plan) Warnings() []string {
	var warnings []string
	for _, plugin := range p.Plugins {
		if warning := p.warning(plugin); warning != "" {
			warnings = append(warnings, fmt.Sprintf("plugin %s %s %s", plugin.Name, plugin.Version, warning))
		}
	}
	return warnings
}

func (p *Plan) warning(plugin Plugin) string {
	image := lastPart(plugin.Image)
	tag, _ := splitVersion(plugin.Version)
	for _, flaw := range flaws {
		if flaw.image == image && flaw.version == tag {
			return flaw.warning
		}
	}
	return p.mismatch(image, plugin.Version)
}

// mismatch is what is wrong with a plugin's version beside that of the server.
func (p *Plan) mismatch(image, version string) string {
	server, known := minorOf(p.Version)
	if !known {
		return ""
	}
	if image == csiImage && server >= csiMerged {
		return fmt.Sprintf("is a part of Velero since v1.%d, which ends when it is installed too; leave it out", csiMerged)
	}
	minor, numbered := minorOf(version)
	if !numbered || !numberedAlongside[image] || server <= minorsBehind || minor+minorsBehind == server {
		return ""
	}
	return fmt.Sprintf("is made for Velero v1.%d, not for %s; choose v1.%d.x of it if that is offered", minor+minorsBehind, p.Version, server-minorsBehind)
}

// lastPart is the name of an image without its registry, path and version.
func lastPart(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	if end := strings.IndexAny(name, ":@"); end >= 0 {
		name = name[:end]
	}
	return name
}

var releasePattern = regexp.MustCompile(`^v1\.(\d{1,4})\.\d+`)

// minorOf is the number of a version 1.N; what is no release has none.
func minorOf(version string) (int, bool) {
	found := releasePattern.FindStringSubmatch(version)
	if found == nil {
		return 0, false
	}
	minor, err := strconv.Atoi(found[1])
	return minor, err == nil
}
