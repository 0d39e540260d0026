package fleet

// view is what is known of a list at one moment.
type view struct {
	kind    Kind
	local   string   // the SHA-256 of the file; "": there is none
	applied *Version // what the file had last as a version of the fleet; nil: it never had one
	remote  *Version // what the fleet has; nil: it has no version
	reader  bool     // the credentials only permit reading
}

// step is what a gate does next with a list.
type step int

const (
	stepNone    step = iota // the list is as it should be, or nothing can be done
	stepNote                // the file has the fleet's version: note that
	stepTake                // make the fleet's version the file
	stepSeed                // publish the applied version again
	stepPublish             // publish the file as a new version
	stepJoin                // compare the file with the fleet's version, and then decide
	stepDiffers             // the file was changed outside of the fleet: an admin decides
	stepLook                // look for the file's content among the fleet's earlier versions
)

// next returns what to do. It never lets a missing or older version of the fleet change the
// file.
func (v view) next() step {
	switch {
	case v.remote == nil:
		return v.seed()
	case v.applied == nil && v.local == v.remote.SHA256:
		return stepNote
	case v.applied == nil && (v.local == "" || v.kind == Fetched):
		return stepTake
	case v.applied == nil:
		return stepJoin
	case v.remote.Sequence < v.applied.Sequence:
		return v.seed()
	case v.remote.Sequence > v.applied.Sequence:
		return v.newer()
	case v.remote.SHA256 != v.applied.SHA256:
		return v.fork()
	}
	return v.same()
}

// seed returns what to do if the fleet has no version, or an older one.
func (v view) seed() step {
	switch {
	case v.local == "", v.reader:
		return stepNone
	case v.applied != nil && v.local == v.applied.SHA256:
		return stepSeed
	}
	return stepPublish
}

// newer returns what to do if the fleet has a newer version.
func (v view) newer() step {
	switch {
	case v.local == v.remote.SHA256:
		return stepNote
	case v.local == "", v.local == v.applied.SHA256, v.local == v.remote.Base, v.kind == Fetched:
		return stepTake
	}
	return stepLook
}

// fork returns what to do with two versions of the same sequence: all gates prefer the same
// one.
func (v view) fork() step {
	switch {
	case v.local == v.remote.SHA256:
		return stepNote
	case v.remote.beats(v.applied) || v.local == "":
		return stepTake
	case v.local == v.applied.SHA256:
		return stepSeed
	}
	return stepDiffers
}

// same returns what to do if the fleet has the version that the file had last.
func (v view) same() step {
	switch {
	case v.local == v.remote.SHA256:
		return stepNone
	case v.local == "", v.kind == Fetched && v.reader: // it has fetched it without the fleet
		return stepTake
	case v.kind == Fetched:
		return stepPublish
	}
	return stepDiffers
}
