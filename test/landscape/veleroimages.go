package landscape

import (
	"context"

	"github.com/openmcp-project/service-provider-velero/test/landscape/programs"
)

// The images of PublishVelero, as a ProviderConfig names them: with ImageAt before and a version behind.
const (
	VeleroImage    = "velero/velero"
	AWSPluginImage = "velero/velero-plugin-for-aws"
	OperatorImage  = "service-provider-velero"
)

// The versions of PublishVelero.
const (
	VeleroVersion    = "v1.18.3"
	OldVeleroVersion = "v1.14.0"
	AWSPluginVersion = "v1.14.3"
)

// PublishVelero builds Velero in both versions and its AWS plugin, unless they are cached, and publishes their images.
func (l *Landscape) PublishVelero(ctx context.Context) error {
	shelf, err := l.shelf()
	if err != nil {
		return err
	}
	found, err := shelf.All(ctx, programs.VeleroNames()...)
	if err != nil {
		return err
	}
	for _, image := range []Image{
		veleroImage(VeleroVersion, found["velero"]),
		veleroImage(OldVeleroVersion, found["velero-1.14"]),
		{
			Path:       AWSPluginImage + ":" + AWSPluginVersion,
			Programs:   map[string]string{awsPlugin: found["velero-plugin-for-aws"], copyPlugin: found["cp-plugin"]},
			Entrypoint: []string{copyPlugin, awsPlugin, "/target/velero-plugin-for-aws"},
		},
	} {
		if err := l.PublishImage(ctx, image); err != nil {
			return err
		}
	}
	return nil
}

const (
	awsPlugin  = "/plugins/velero-plugin-for-aws"
	copyPlugin = "/bin/cp-plugin"
)

func veleroImage(version, program string) Image {
	return Image{Path: VeleroImage + ":" + version, Programs: map[string]string{"/velero": program}, Entrypoint: []string{"/velero"}}
}

// PublishOperator builds the operator from the checkout as its own image has it, and publishes that.
func (l *Landscape) PublishOperator(ctx context.Context, version string) error {
	program := l.site.Path("bin", OperatorImage+"-static")
	if err := l.goBuildStatic(ctx, program, "./cmd/service-provider-velero"); err != nil {
		return err
	}
	const path = "/service-provider-velero"
	return l.PublishImage(ctx, Image{
		Path: OperatorImage + ":" + version, Programs: map[string]string{path: program}, Entrypoint: []string{path},
	})
}
