"""Words for what fails of people and animals: who they are, their hands, their bodies."""

from __future__ import annotations

from collections.abc import Mapping

from echo_hf.engines.rules.words import phrases

PEOPLE = """mum mom dad mother father brother sister son daughter wife husband kid child baby boy
girl boyfriend girlfriend grandmother grandfather grandma grandpa grandson granddaughter uncle
aunt cousin friend dog cat pet horse face head nose eyes hair"""
NOT_THEIRS = frozenset(
    f"not {owner} {person}"
    for owner in ("my", "her", "his", "their", "our", "your", "same")
    for person in PEOPLE.split()
)
# Of these it is only a failure that they changed.
SUBJECTS = phrases(
    en="""person, character, characters, subject, protagonist, man, woman, dog, cat, guy, girl,
    boy, kid, he, she, him, her""",
    es="persona, personaje, personajes, perro, gato",
    fr="personne, personnage, personnages, chien, chat",
    de="person, figur, hund, katze",
    pt="pessoa, personagem, cachorro, gato",
    it="persona, personaggio, cane, gatto",
)
FAULTS: Mapping[str, frozenset[str]] = {
    "identity shift": NOT_THEIRS
    | phrases(
        en="""not recognise, not recognize, hardly recognise, hardly recognize, barely
        recognise, barely recognize, unrecognisable, unrecognizable, different person, another
        person, someone else, somebody else, new person, random person, total stranger,
        stranger, not me, not her, not him, not them, not my face, not her face, not his face,
        not their face, not my dog, not my cat, not my wife, not my husband, not my kid, not my
        mum, not my mom, not my dad, not same person, not same face, not same dog, face thing,
        faces thing, not same cat, not same guy, not same man, not same woman, not same
        character, not same girl, not same boy, not look like me, not look like him, not look
        like her, not look like them, not look like us, not look like my, not look like
        original, not look like same, not resemble me, not resemble her, not resemble him, not
        looking like me, looks nothing like, look nothing like, nothing like me, nothing like
        her, nothing like him, nothing like my, nothing like us, face drift, identity drift,
        identity shift, identity loss, new face, different face, wrong face, years older, years
        younger, distant cousin, like a cousin, evil twin, random woman, random man, random guy,
        random girl, random dude, who is this, who is that, whose face, could be anyone, could
        be anyones, could be anybody, looks like anyone""",
        es="""otra persona, otra cara, persona distinta, persona diferente, otro perro, otro
        gato, no se parece, no se parecen, ni se parece, no soy yo, no es ella, no es él, no es
        mi cara, no es misma persona, no es misma cara, cambia la cara, cambió la cara, me
        cambió la cara, quién es""",
        fr="""autre personne, quelqu un d autre, pas moi, pas elle, pas lui, ressemble pas,
        ressemblent pas, ressemble plus, ne me ressemble pas, ne ressemble pas, ne ressemble
        plus, pas même personne, pas même visage, pas ressemblant""",
        de="""bin ich nicht, bin nicht ich, andere person, anderer mensch, jemand anderes,
        jemand anders, nicht ich, nicht ähnlich, fremde person, nicht wie ich, nicht mein
        gesicht, nicht dieselbe person, nicht die gleiche person, nicht wiederzuerkennen, kaum
        wiederzuerkennen""",
        pt="""outra pessoa, pessoa diferente, não sou eu, não é ela, não é ele, não parece
        comigo, não se parece, não parece eu, não é mesma pessoa, nem parece, outro rosto""",
        it="""altra persona, altra faccia, persona diversa, qualcun altro, non sono io, non è
        lei, non è lui, non mi somiglia, non mi assomiglia, non somiglia, non assomiglia, non ci
        somiglia""",
    ),
    "hands": phrases(
        en="""hand thing, hands thing, six fingers, seven fingers, eight fingers, four fingers,
        three fingers, 6 fingers, 7 fingers, 8 fingers, 4 fingers, 3 fingers, extra finger,
        extra fingers, extra thumb, extra hand, extra hands, two thumbs, three hands, third
        hand, 3 hands, sixth finger, 6th finger, too many fingers, missing finger, missing
        fingers, missing thumb, finger missing, fingers missing, too few fingers, wrong number
        of fingers, count fingers, count hands, mangled hands, mangled fingers, melted fingers,
        sausage fingers, weird hands, weird fingers, fused fingers, backwards hand""",
        es="""seis dedos, siete dedos, cuatro dedos, 6 dedos, 7 dedos, 4 dedos, dedo de más,
        dedos de más, tres manos, otro dedo, falta un dedo, le sobra un dedo""",
        fr="""six doigts, sept doigts, quatre doigts, 6 doigts, 7 doigts, doigt en trop, doigts
        en trop, trois mains, trop de doigts, manque un doigt, doigt manquant""",
        de="""sechs finger, sieben finger, vier finger, 6 finger, 7 finger, zu viele finger,
        drei hände, finger zu viel, finger fehlt""",
        pt="""sete dedos, quatro dedos, dedo a mais, dedos a mais, três mãos, falta um dedo,
        dedo sobrando""",
        it="""sei dita, sette dita, quattro dita, 6 dita, 7 dita, dito in più, dita in più, tre
        mani, troppe dita, manca un dito""",
    ),
    "anatomy": phrases(
        en="""three legs, three arms, extra leg, extra legs, extra arm, extra arms, extra limb,
        extra limbs, third leg, third arm, two heads, two left feet, five legs, 3 legs, 3 arms,
        5 legs, missing leg, missing arm, missing foot, missing limb, deformed, disfigured,
        mutated, broken neck, broken arm, bent backwards, wrong anatomy, bad anatomy, extra toe,
        extra toes, six toes, extra teeth, too many teeth, body horror, anatomically""",
        es="tres piernas, tres brazos, tres patas, pierna de más, brazo de más, dos cabezas",
        fr="trois jambes, trois bras, trois pattes, jambe en trop, bras en trop, deux têtes",
        de="""drei beine, drei arme, bein zu viel, arm zu viel, zwei köpfe, drittes bein,
        dritter arm""",
        pt="três pernas, três braços, perna a mais, braço a mais, duas cabeças, três patas",
        it="tre gambe, tre braccia, gamba in più, braccio in più, due teste, tre zampe",
    ),
    "skin tone": phrases(
        en="""whitewashed, whitewashing, lighter skin, darker skin, wrong skin, wrong race,
        wrong ethnicity, skin color changed, skin tone changed, made me white, tanned me""",
        es="piel más clara, piel más oscura, me aclaró",
        fr="peau plus claire, peau plus foncée",
        de="hautfarbe, hellere haut, dunklere haut",
        pt="pele mais clara, pele mais escura",
        it="pelle più chiara, pelle più scura",
    ),
}
TOPICS: Mapping[str, frozenset[str]] = {
    "identity shift": phrases(
        en="""face, faces, facial, likeness, identity, resemblance, freckles, eyes, nose, smile,
        jawline, cheekbones, hairline, facial features""",
        es="""cara, caras, rostro, rostros, parecido, identidad, facciones, rasgos, ojos, nariz,
        pecas""",
        fr="visage, visages, ressemblance, identité, traits du visage, yeux, nez, tête",
        de="gesicht, gesichter, gesichtern, gesichts, gesichtszüge, ähnlichkeit, augen, nase",
        pt="rosto, rostos, identidade, semelhança, olhos, feições",
        it="viso, visi, volto, volti, faccia, facce, somiglianza, lineamenti, occhi, naso",
    ),
    "hands": phrases(
        en="""hand, hands, finger, fingers, thumb, thumbs, fingertips, fingernails, nails are,
        nails look, nails have, nails on, nails and, nails in, nails of""",
        es="mano, manos, dedo, dedos, pulgar, pulgares",
        fr="mains, doigt, doigts, pouce, pouces",
        de="hände, händen, daumen, fingern",
        pt="mão, mãos, polegar",
        it="mani, dito, dita, pollice",
    ),
    "anatomy": phrases(
        en="""anatomy, leg, legs, arm, arms, limb, limbs, foot, feet, toe, toes, teeth, elbow,
        elbows, knee, knees, torso, neck, wing, wings, tail, paw, paws, ears""",
        es="anatomía, pierna, piernas, brazo, brazos, dientes, cuello, patas, pata, orejas",
        fr="anatomie, jambe, jambes, bras, pied, pieds, dents, cou, pattes, oreilles",
        de="bein, beine, arme, füße, zähne, hals, pfoten, ohren, flügel",
        pt="anatomia, perna, pernas, braço, braços, dentes, pescoço, orelhas",
        it="gamba, gambe, braccio, braccia, piedi, denti, collo, zampe, orecchie",
    ),
    "skin tone": phrases(
        en="skin tone, skin color, skin colour, complexion, ethnicity, race, skin",
        es="tono de piel, piel",
        fr="couleur de peau, peau, teint",
        de="hautton",
        pt="tom de pele, pele",
        it="pelle, carnagione",
    ),
    "hair": phrases(
        en="hair, haircut, hairstyle, beard, fringe, bangs",
        es="pelo, cabello, barba",
        fr="cheveux, coiffure, barbe",
        de="haare, frisur, bart",
        pt="cabelo, cabelos",
        it="capelli",
    ),
    "clothing": phrases(
        en="""clothes, clothing, outfit, dress, shirt, jacket, suit, coat, trousers, pants,
        skirt, uniform""",
        es="ropa, vestido, camisa, traje",
        fr="vêtements, robe, chemise, costume",
        de="kleidung, kleid, hemd, anzug, jacke",
        pt="roupa, roupas, terno",
        it="vestiti, vestito, camicia, abito",
    ),
    "expression": phrases(
        en="expression, expressions, pose, poses, posture, angry",
        es="expresión, gesto, postura",
        de="gesichtsausdruck, ausdruck, haltung",
        pt="expressão",
        it="espressione, posa",
    ),
}
HAN_FAULTS: Mapping[str, str] = {
    "identity shift": (
        "不像(?:我|本人|她|他|原|同一|啊|了)?|变脸|變臉|换脸|換臉|脸(?:变|崩|不|都|完全|错)"
        "|臉(?:變|崩|不|都)|换了(?:个|一个)?人|換了(?:個|一個)?人|变了(?:个|一个)?人"
        "|变成(?:了)?(?:另|别)|不是同一个?人|不是我|不是本人|认不出|認不出|另一个人|别人(?:的脸)?|別の(?:人|犬|猫|子|顔|キャラ|生き物)"
        "|五官(?:变|都|不)|顔が(?:違|変|別|崩|似)|別人|似て(?:い)?(?:ない|ません)|誰[だで!！？?]"
        "|誰やねん|本人じゃない"
    ),
    "hands": (
        "[六七八四三]根手指|[六6七7四4]本(?:の)?指|指が[六6七7四4]本|多(?:了)?一?根手指"
        "|手指(?:多|少|错|錯|不对|不對|数)|手指[^，。]{0,4}[六七四6]|指の(?:本)?数"
        "|指が(?:多|足り|変|おかし|くっつ)|手が(?:3本|三本|変|おかし|崩)"
    ),
    "anatomy": (
        "三条[腿胳手]|三隻[腳手]|[三3]条腿|多(?:了)?一?[条隻只](?:腿|手|胳膊|尾巴)|足が[三3五5]本"
        "|腕が[三3]本|首が(?:変|おかし)|関節が"
    ),
    "hair": "头发(?:变|不|错)|頭髮(?:變|不|錯)|髪(?:型|色)?が(?:変|違|おかし)",
    "clothing": "衣服(?:变|不|错|换|變|換|錯)|服が(?:変|違|おかし)",
}
HAN_TOPICS: Mapping[str, str] = {
    "identity shift": "脸|臉|五官|长相|長相|面部|人物一致|顔|表情|眼睛|目が|本人",
    "hands": "手指|手部|双手|雙手|指(?!示|定|令)|手が|手の|手は|右手|左手",
    "anatomy": "腿|胳膊|手臂|四肢|肢体|肢體|身体|身體|脖子|足|腕|体が|首が|歯|耳",
    "hair": "头发|頭髮|发型|髮型|髪",
    "clothing": "衣服|服装|服裝|裙|服が|衣装",
}
